# What OAR runs on each node of a job before it begins ("init") and after it has ended ("clean"), in the place
# of Debian's job_resource_manager.pl. That one gives each job processors, which the emulated nodes share, and
# deletes all files of the job's user in /tmp, which is the host's. This one makes a group of processes, and
# kills what is in it.
use strict;
my $job = eval(join("", <STDIN>));
exit(2) unless defined($job->{cpuset_path});
my $place = "/dev/cpuset$job->{cpuset_path}/$job->{name}";
if ($ARGV[0] eq "init") {
    exit(system("oardodo mkdir -p $place && oardodo chown -R oar $place") ? 5 : 0);
}
exit(0) unless -d $place;
for (1 .. 200) {
    my $processes = join(" ", split(/\n/, `cat $place/tasks`));
    exit(system("oardodo rmdir $place") ? 6 : 0) if $processes eq "";
    system("oardodo kill -9 $processes 2>/dev/null");
    select(undef, undef, undef, 0.05);
}
exit(6);
